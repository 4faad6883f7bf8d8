import { CliError } from '../../errors.ts'

/** A failure of kind `response`; `serviceMessage` is what the service said instead, unescaped. */
export const notUnderstood = (message: string, serviceMessage?: string) =>
  new CliError('response', message, { serviceMessage })
