/** Profiles of the configuration with their addresses, for people who connect a host. */
import { array, object, text } from '../../domain/schema.ts';
import { type AnyRoute, defineRoute } from '../http/table/route.ts';
import type { Catalog } from '../mcp/catalog.ts';

export function createMcpProfilesRoute({
  catalog,
}: {
  readonly catalog: { readonly current: Catalog };
}): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/mcp_profiles',
    summary: 'Profiles of McpProfiles, each with fewer tools at an address of its own',
    description: '`address` is for hosts that connect with OAuth. Empty without profiles.',
    group: 'info',
    auth: 'session',
    result: array(
      object({
        name: text({ examples: ['shop'] }),
        title: text({ examples: ['Shop'] }),
        address: text({ examples: ['https://gate.example/connect/p/shop/mcp'] }),
      }),
    ),
    handle: ({ site }) =>
      [...catalog.current.profiles].map(([name, { title = name }]) => {
        return { name, title, address: `${site.baseUrl}/connect/p/${name}/mcp` };
      }),
  });
}
