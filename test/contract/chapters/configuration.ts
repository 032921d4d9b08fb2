/** Contract, conventions, sections 2.5 and 2.8: configuration keys with the names of the contract. */
import { makePasskey } from '../../../kit/authenticator.ts';
import { type Check, checksOf } from '../check.ts';
import { customRows } from '../custom-rows.ts';
import { passkeyOptions, registerPasskey } from '../unshown.ts';

const ADDRESS = 'https://gate.example';

const ORIGINS = ['http://localhost:7777', 'http://localhost:8888'];
/** Keys of section 2.8. */
const FIDO2 = {
  serverDomain: 'localhost',
  serverName: 'Contract',
  serverIcon: 'https://icons.example/icon.png',
  timestampDriftTolerance: 1_000,
  origins: ORIGINS,
};

/** Configuration of the gateway for these checks. */
export function configuration(core: string): Record<string, unknown> {
  return { BaseUrl: ADDRESS, Config: customRows(core), Fido2: FIDO2 };
}

export const CHECKS: readonly Check[] = [
  ...checksOf('Intro', {
    'with a configured BaseUrl, info, the API description and the printed address are under it': {
      sentence: 'All routes are below the base address {base_url}. This page gives paths relative to it.',
      async run(t, world) {
        t.equal((await world.get('/auth/v1/info')).at('result.baseUrl'), ADDRESS);
        t.equal((await world.get('/docs/openapi.json')).at('servers.0.url'), ADDRESS);
        t.match(world.gateway.output().stdout, ADDRESS);
      },
    },
  }),
  ...checksOf('2.5', {
    'a configuration with both under Config serves them': {
      sentence:
        'Config.McpTools in the static configuration declares custom tools by name. … Config.McpResources declares custom resources by URI.',
      async run(t, world) {
        const { auth } = await world.agent();
        t.equal((await world.tool(auth, 'custom_get')).textAt('result.content.0.text'), '{"result":"fine"}');
        const resource = await world.rpc(auth, 'resources/read', { uri: 'contract://core/plain' });
        t.equal(resource.textAt('result.contents.0.text'), '{"result":"fine"}');
      },
    },
  }),
  ...checksOf('2.8', {
    'the registration options have both': {
      sentence: 'serverDomain | Domain of the relying party. … serverName | Name that is displayed.',
      async run(t, world) {
        const { answer } = await passkeyOptions(world.gateway.url, 'register');
        t.match(answer.at('result.options.rp'), { id: 'localhost', name: 'Contract' });
      },
    },
    'the registration options have the icon': {
      sentence: 'serverIcon | URL of the icon for authenticators.',
      async run(t, world) {
        const { answer } = await passkeyOptions(world.gateway.url, 'register');
        t.match(answer.text, /https:\/\/icons\.example\/icon\.png/);
      },
    },
    'a key can be registered from each configured origin; another origin is 401': {
      sentence: 'origins | Origin URLs that are allowed, as an array.',
      async run(t, world) {
        const enrol = (origin: string) => registerPasskey(world.gateway.url, makePasskey(), { origin });
        for (const origin of ORIGINS) t.equal((await enrol(origin)).status, 200, origin);
        t.same((await enrol('http://localhost:9999')).refusal, [401, 1105]);
      },
    },
  }),
];
