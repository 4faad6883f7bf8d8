import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { validatorOptions } from './validator-options.ts'

/**
 * Functions that check whether a schema is valid, one for each draft. Compiling the drafts takes 70 ms, so
 * the build replaces this file by the compiled functions.
 */
export const validateDraft2020Schema = new Ajv2020(validatorOptions).getSchema(
  'https://json-schema.org/draft/2020-12/schema',
) as ValidateFunction
export const validateDraft07Schema = new Ajv(validatorOptions).getSchema(
  'http://json-schema.org/draft-07/schema',
) as ValidateFunction
