import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { validatorOptions } from './validator-options.ts'

/**
 * Validators that check schemas, one for each draft. Compiling them takes 70 ms, so the build replaces this
 * file by their code.
 */
export const validateDraft2020 = new Ajv2020(validatorOptions).getSchema(
  'https://json-schema.org/draft/2020-12/schema',
) as ValidateFunction
export const validateDraft07 = new Ajv(validatorOptions).getSchema(
  'http://json-schema.org/draft-07/schema',
) as ValidateFunction
