// Types of two modules of undici. Its own types describe only the whole package, which is slow to load.
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'

  const client: typeof Client
  export default client
}

declare module 'undici/lib/util/date.js' {
  const date: { parseHttpDate(text: string): Date | undefined }
  export default date
}
