import type { Reporter, TestModule } from 'vitest/node'

/**
 * Prints how many fault tests fail when they are repeated without their fault, as they must, and why the
 * others still pass.
 */
export default class ProofReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const title = 'rows and tests of odd answers, each repeated without its fault'
    const counts = new Map<string, number>()
    const either: string[] = []
    for (const test of tests) {
      const { proof } = test.meta()
      const { state } = test.result()
      const verdict = proof?.verdict ?? (state === 'passed' ? 'bites (answer)' : state)
      const key = proof?.fault === undefined ? verdict : `${verdict} (${proof.fault})`
      counts.set(key, (counts.get(key) ?? 0) + 1)
      if (proof?.either !== undefined) either.push(`${test.name}: ${proof.either}`)
    }
    const lines = [...counts].sort().map(([key, count]) => `  ${key}: ${count}`)
    const reasons = either.map((line) => `  ${line}`)
    process.stdout.write(['', `${title}: ${tests.length}`, ...lines, ...reasons, ''].join('\n'))
  }
}
