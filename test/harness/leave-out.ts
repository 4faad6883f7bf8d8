import { beforeEach } from 'vitest'
import { has, needsIn } from './needs.ts'

// A test whose title, or that of a group around it, says that it needs what this system does not have is left out.
beforeEach(({ task, skip }) => {
  const titles = [task.name]
  for (let { suite } = task; suite; { suite } = suite) titles.unshift(suite.name)
  const missing = titles.flatMap(needsIn).find((need) => !has(need))
  if (missing) skip(`no ${missing}`)
})
