// Replaces random numbers and the time in file names, so that a fault can be injected into a named file.
let count = 0

crypto.randomUUID = () => `00000000-0000-4000-8000-${String(count++).padStart(12, '0')}`
Math.random = () => 0.5

if (process.argv[2] === 'config') Date.now = () => 1_700_000_000_000
