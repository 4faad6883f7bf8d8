// The type of a module of undici. undici's own types describe only the whole package, which loads slowly.
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'

  const client: typeof Client
  export default client
}
