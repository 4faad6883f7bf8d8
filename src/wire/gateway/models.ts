/** Models of the default `family` (src/wire/README.md: gateway, 4.2). */
export const documentedModels = ['alpha-2.5-pro', 'alpha-3-pro-preview', 'alpha-3.1-pro-preview'] as const
