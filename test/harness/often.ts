/**
 * How often a property is tried: so often by npm run test:all, and a tenth of that, but never less than twenty times,
 * by npm test.
 */
export const often = (numRuns: number) => ({
  numRuns: process.env.TEST_ALL ? numRuns : Math.max(Math.ceil(numRuns / 10), Math.min(numRuns, 20)),
})
