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

/** Words that people type after `help`, each with the topic or command that has the answer. */
const otherNames = new Map<string, string[]>([
  ['errors', ['exit-codes']],
  ['retries', ['settings']],
  ['json', ['formats']],
  ['proxy', ['platforms']],
  ['proxies', ['platforms']],
  ['windows', ['platforms']],
  ['streaming', ['chat']],
  ['threads', ['chat']],
  ['schema', ['chat']],
  ['markdown', ['chat']],
  ['models', ['chat']],
  ['jenkins', ['jenkins-azure']],
  ['azure', ['jenkins-azure']],
  ['docker', ['kubernetes']],
  ['containers', ['kubernetes']],
  ['slurm', ['clusters']],
  ['parallel', ['clusters']],
  ['shares', ['clusters']],
  ['agents', ['agents-in-ci']],
  ['stdin', ['input']],
  ['variables', ['environment']],
])

export const resolveHelpWords = (words: string[]): string[] =>
  (words.length === 1 && otherNames.get(words[0] as string)) || words

export const isTopic = (name: string): name is TopicName => topics.some((topic) => topic === name)
