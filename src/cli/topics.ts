import type { Topic } from './topic-texts.ts'

const read = async (name: keyof typeof import('./topic-texts.ts')) => (await import('./topic-texts.ts'))[name]

/** Help that belongs to no command, by name. */
export const topics: Record<string, () => Promise<Topic>> = {
  settings: () => read('settings'),
  profiles: () => read('profiles'),
  environment: () => read('environment'),
  input: () => read('input'),
  'exit-codes': () => read('exitCodes'),
}
