import { parentPort, workerData } from 'node:worker_threads'
import { createJudge } from './judge.ts'

const { problems, judge } = createJudge(JSON.parse(workerData))

/** Answers each text by its mismatches, and first of all says what is wrong with the schema. */
parentPort?.postMessage(problems)
parentPort?.on('message', (text: string) => parentPort?.postMessage(judgeText(text)))

function judgeText(text: string): string[] {
  try {
    return judge(JSON.parse(text))
  } catch (error) {
    return [error instanceof RangeError ? 'it is nested too deep to be checked' : (error as Error).message]
  }
}
