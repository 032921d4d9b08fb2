/** Contract, conventions and section 2.5: what a configuration says, as the contract writes it. */
import type { Check } from '../check.ts';
import { customRows } from './2-tools.ts';

const ADDRESS = 'https://gate.example/entry';

/** The configuration of the gateway that these checks need. */
export function configuration(core: string): Record<string, unknown> {
  return { BaseUrl: ADDRESS, Config: customRows(core) };
}

export const CHECKS: readonly Check[] = [
  {
    section: 'Intro',
    sentence: 'The base address is {base_url}. Paths below are relative to it.',
    shows: 'with a BaseUrl of the configuration info, the description and the printed address are under it',
    async run(t, world) {
      t.equal((await world.get('/auth/v1/info')).at('result.baseUrl'), ADDRESS);
      t.equal((await world.get('/docs/openapi.json')).at('servers.0.url'), ADDRESS);
      t.match(world.gateway.output().stdout, ADDRESS);
    },
  },
  {
    section: '2.5',
    sentence:
      'Custom tools are declared in static configuration under Config.McpTools … Custom resources are declared under Config.McpResources',
    shows: 'a configuration with both under Config serves them',
    async run(t, world) {
      const { auth } = await world.agent();
      t.equal((await world.tool(auth, 'custom_get')).textAt('result.content.0.text'), '{"result":"fine"}');
      const resource = await world.rpc(auth, 'resources/read', { uri: 'contract://core/plain' });
      t.equal(resource.textAt('result.contents.0.text'), '{"result":"fine"}');
    },
  },
];
