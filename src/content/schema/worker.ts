import { parentPort, workerData } from 'node:worker_threads'
import { createSchemaValidator } from './validator.ts'

const { problems, validate } = createSchemaValidator(JSON.parse(workerData))

// The first message has the problems of the schema. The thread then answers each text with its mismatches.
parentPort?.postMessage(problems)
parentPort?.on('message', (text: string) => parentPort?.postMessage(validateText(text)))

function validateText(text: string): string[] {
  try {
    return validate(JSON.parse(text))
  } catch (error) {
    return [error instanceof RangeError ? 'it is nested too deep to be checked' : (error as Error).message]
  }
}
