import { InvalidArgumentError } from 'commander'

/** For a flag that may be given several times. */
export const addValue = (value: string, earlier: string[] | undefined): string[] => [
  ...(earlier ?? []),
  value,
]

/** A whole number from 1 on. */
export function parseCount(value: string): number {
  if (!/^[1-9]\d{0,8}$/.test(value)) throw new InvalidArgumentError('It must be a whole number from 1 on.')
  return Number(value)
}

export function parseNumber(value: string): number {
  if (!/^-?(\d+\.?\d*|\.\d+)$/.test(value)) throw new InvalidArgumentError('It must be a number.')
  return Number(value)
}
