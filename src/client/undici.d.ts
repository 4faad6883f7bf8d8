// undici's own types cover its whole entry point, which is slow to load; these are its parts.
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'

  const client: typeof Client
  export default client
}
