/** The bundler and the tests take such a file as one text. */
declare module '*.txt' {
  const text: string
  export default text
}
