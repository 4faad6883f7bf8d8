import { beforeEach } from 'vitest'

/** Returns the requirements of a title, such as zsh and FIFOs in `(needs zsh and FIFOs)`. */
const findNeeds = (title: string): string[] =>
  [...title.matchAll(/\(needs ([^()]+)\)/g)].flatMap(([, list = '']) => list.split(/, | and /))

// Skips a test if its title, or the title of its group, names a requirement that this system does not meet.
beforeEach(async ({ task, skip }) => {
  const titles = [task.name]
  for (let { suite } = task; suite; { suite } = suite) titles.unshift(suite.name)
  const needs = titles.flatMap(findNeeds)
  if (needs.length === 0) return
  const { meetsRequirement } = await import('./needs.ts')
  const missing = needs.find((need) => !meetsRequirement(need))
  if (missing) skip(`no ${missing}`)
})
