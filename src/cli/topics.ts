export const topics = [
  'settings',
  'profiles',
  'environment',
  'input',
  'event-types',
  'policy',
  'batch',
  'ci',
  'github',
  'gitlab',
  'jenkins-azure',
  'kubernetes',
  'clusters',
  'agents-in-ci',
  'review',
  'platforms',
  'exit-codes',
  'formats',
] as const

export type TopicName = (typeof topics)[number]

/** Words that users type after `help`. The key is the topic or the command that has the answer. */
const otherNames = {
  'exit-codes': 'errors',
  settings: 'retries',
  formats: 'json',
  platforms: 'proxy proxies windows',
  chat: 'streaming threads schema markdown models',
  'jenkins-azure': 'jenkins azure',
  kubernetes: 'docker containers',
  clusters: 'slurm parallel shares',
  'agents-in-ci': 'agents',
  input: 'stdin',
  environment: 'variables',
}

export function resolveHelpWords(words: string[]): string[] {
  const found = Object.entries(otherNames).find(([, names]) => names.split(' ').includes(words.join(' ')))
  return found ? [found[0]] : words
}

export const isTopic = (name: string): name is TopicName => topics.some((topic) => topic === name)
