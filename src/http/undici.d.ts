// undici's own types are those of its whole entry point, which is slow to load; these are two of its parts.
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'

  const client: typeof Client
  export default client
}

declare module 'undici/lib/util/date.js' {
  const date: { parseHttpDate(text: string): Date | undefined }
  export default date
}
