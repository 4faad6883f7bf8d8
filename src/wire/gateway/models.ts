/** The models for chat that are documented (gateway, 4.2). */
export const documentedModels = [
  '{family}-2.5-pro',
  '{family}-3-pro-preview',
  '{family}-3.1-pro-preview',
] as const
