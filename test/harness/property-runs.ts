/**
 * Returns the number of cases of a property test: `numRuns` in `npm run test:all`, a twentieth in `npm test`,
 * and twenty times `numRuns` in `npm run test:night`.
 */
export const scaleRuns = (numRuns: number) => ({
  numRuns: process.env.TEST_ALL ? numRuns * Number(process.env.TEST_TIMES ?? 1) : Math.ceil(numRuns / 20),
})
