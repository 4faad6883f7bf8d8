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

export const isTopic = (name: string): name is TopicName => topics.some((topic) => topic === name)
