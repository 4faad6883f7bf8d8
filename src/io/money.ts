/** Formats money for a person: `$1.87`. `amount` is in whole minor units, such as cents. */
export function formatMoney({ amount, currency }: { amount: bigint; currency: string }): string {
  const decimals = decimalsOf(currency)
  const digits = String(amount).padStart(decimals + 1, '0')
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
  // As text it stays exact.
  return new Intl.NumberFormat('en-US', { style: 'currency', currency }).format(text as unknown as number)
}

/** The number of decimals of a currency. An unknown currency has two. */
const decimalsOf = (currency: string): number =>
  new Intl.NumberFormat('en-US', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2

/** Converts an amount as a person writes it, such as `2.50`, to minor units. A smaller rest is dropped. */
export function toMinorUnits(text: string, currency: string): { amount: bigint; isExact: boolean } {
  const decimals = decimalsOf(currency)
  const [whole = '', fraction = ''] = text.split('.')
  const kept = fraction.slice(0, decimals).padEnd(decimals, '0')
  return { amount: BigInt(`${whole}${kept}` || '0'), isExact: /^0*$/.test(fraction.slice(decimals)) }
}
