import { beforeEach } from 'vitest'

/** What a title says that its test needs: `(needs zsh, jq and FIFOs)`. */
const needsIn = (title: string): string[] =>
  [...title.matchAll(/\(needs ([^()]+)\)/g)].flatMap(([, list = '']) => list.split(/, | and /))

// A test whose title, or that of a group around it, says that it needs what this system does not have is left out.
beforeEach(async ({ task, skip }) => {
  const titles = [task.name]
  for (let { suite } = task; suite; { suite } = suite) titles.unshift(suite.name)
  const needs = titles.flatMap(needsIn)
  if (needs.length === 0) return
  const { has } = await import('./needs.ts')
  const missing = needs.find((need) => !has(need))
  if (missing) skip(`no ${missing}`)
})
