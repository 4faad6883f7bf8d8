import { beforeEach } from 'vitest'
import { findMissing } from './needs.ts'

beforeEach(({ task, skip }) => {
  const names = [task.name]
  for (let { suite } = task; suite; { suite } = suite) names.unshift(suite.name)
  const missing = findMissing(task.file.name, names)
  if (missing) skip(`needs ${missing}`)
})
