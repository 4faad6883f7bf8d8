/** Returns a text such as `$1.87`. `amount` is in minor units, such as cents. */
export function formatMoney({ amount, currency }: { amount: bigint; currency: string }): string {
  const decimals = findDecimals(currency)
  const digits = String(amount).padStart(decimals + 1, '0')
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
  // `format` gets the amount as a string, because a number would be rounded.
  return new Intl.NumberFormat('en-US', { style: 'currency', currency }).format(text as unknown as number)
}

/** An unknown currency has two decimals. */
const findDecimals = (currency: string): number =>
  new Intl.NumberFormat('en-US', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2

/** Converts a limit from major units to minor units, such as cents. Rounds up a fraction of a minor unit. */
export function toMinorUnits(text: string, currency: string): bigint {
  const decimals = findDecimals(currency)
  const [whole = '', fraction = ''] = text.split('.')
  const kept = fraction.slice(0, decimals).padEnd(decimals, '0')
  const isRounded = /[1-9]/.test(fraction.slice(decimals))
  return BigInt(`${whole}${kept}` || '0') + (isRounded ? 1n : 0n)
}
