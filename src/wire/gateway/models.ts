/** The models for chat that are documented (gateway, 4.2), with the default of the setting `family`. */
export const documentedModels = ['alpha-2.5-pro', 'alpha-3-pro-preview', 'alpha-3.1-pro-preview'] as const
