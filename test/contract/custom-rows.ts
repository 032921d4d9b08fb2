/** Tools and resources of a configuration, with the fields of spec 2.5. */
const SCHEMA = {
  type: 'object',
  properties: { a: { type: 'string' }, b: { type: 'integer' }, payload: { type: 'object' } },
};
export const TOOL = { description: 'A tool of the contract.', inputSchema: SCHEMA };

/** Definitions with the field names of spec 2.5. */
export function customRows(core: string): Record<string, unknown> {
  const endpoint = `${core}/core/v1/custom/do`;
  return {
    McpTools: {
      custom_get: { ...TOOL, endpoint, method: 'GET' },
      custom_post: { ...TOOL, endpoint, method: 'POST' },
      custom_query: { ...TOOL, endpoint, method: 'POST', queryParams: ['a'] },
      custom_root: { ...TOOL, endpoint, method: 'POST', bodyRootProperty: 'payload', queryParams: ['a'] },
      custom_proved: { ...TOOL, endpoint, method: 'GET', restricted: ['McpBasic'] },
      custom_app: { ...TOOL, endpoint, method: 'GET', appScope: true },
      custom_code: {
        ...TOOL,
        endpoint,
        method: 'POST',
        capabilityModule: 'wallet',
        capabilityCodeBodyProperty: 'orderCode',
      },
    },
    McpResources: {
      'contract://core/plain': {
        endpoint,
        name: 'Plain',
        description: 'A resource of the contract.',
        mimeType: 'application/json',
        queryString: 'fixed=1&kind=plain',
      },
      'contract://core/proved': { endpoint, name: 'Proved', restricted: ['McpBasic'] },
      'contract://core/app': { endpoint, name: 'App', appScope: true },
      'contract://core/open': { endpoint, name: 'Open', sessionScope: false },
      'contract://core/code': { endpoint, name: 'Code', capabilityModule: 'wallet' },
    },
  };
}
