// parley loads only one module of undici, because the whole package loads slowly. undici has no types for it.
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'

  const client: typeof Client
  export default client
}

declare module 'undici/lib/core/symbols.js' {
  const symbols: { readonly kParser: unique symbol }
  export default symbols
}
