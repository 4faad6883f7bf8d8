/**
 * How often a property is tried: so often by npm run test:all, a tenth of that, but never less than twenty times, by
 * npm test, and twenty times that by npm run test:night.
 */
export const often = (numRuns: number) => ({
  numRuns: process.env.TEST_ALL
    ? numRuns * Number(process.env.TEST_TIMES ?? 1)
    : Math.max(Math.ceil(numRuns / 10), Math.min(numRuns, 20)),
})
