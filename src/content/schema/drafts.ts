import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { reading } from './reading.ts'

/**
 * What says whether something is a schema of the draft. These take 70 ms to make: the build makes them, and puts their code
 * in the place of this file.
 */
export const draft2020 = new Ajv2020(reading).getSchema(
  'https://json-schema.org/draft/2020-12/schema',
) as ValidateFunction
export const draft07 = new Ajv(reading).getSchema(
  'http://json-schema.org/draft-07/schema',
) as ValidateFunction
