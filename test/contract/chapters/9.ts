/** Contract, section 9: versioning. */
import { checksOf } from '../check.ts';
import { expectOk } from '../unshown.ts';
import { smallFile, uploadV1, uploadV2 } from '../uploads.ts';

export const CHECKS = checksOf('9', {
  'every described path under /auth has its version; a file of either transport can be read through both': {
    sentence:
      'The version of a REST path is a segment: /auth/v1/... and /auth/v2/... (both versions of the file transport remain).',
    async run(t, world) {
      const { json } = await world.get('/docs/openapi.json');
      const paths = Object.keys((json as { paths: object }).paths).filter((path) => path.startsWith('/auth'));
      t.same(
        paths.filter((path) => !/^\/auth\/v[12]\//.test(path)),
        [],
      );
      const person = await world.person();
      const files = [await uploadV1(world, person, smallFile()), await uploadV2(world, person, smallFile())];
      for (const { fileId, bytes } of files)
        for (const version of ['v1', 'v2']) {
          const answer = await world.get(`/auth/${version}/file/${fileId}`, person.auth);
          t.ok(answer.bytes.equals(bytes), version);
        }
    },
  },
  'three numbers, the same in get_info, info and initialize': {
    sentence: 'get_info reports the version of the service in version. Its form is <major>.<minor>.<patch>.',
    async run(t, world) {
      const version = (await world.get('/auth/v1/get_info')).textAt('result.version');
      t.match(version, /^\d+\.\d+\.\d+$/);
      t.equal((await world.get('/auth/v1/info')).at('result.version'), version);
      const hello = {
        protocolVersion: '2024-11-05',
        capabilities: {},
        clientInfo: { name: 'c', version: '1' },
      };
      const answer = await world.rpc({}, 'initialize', hello);
      t.equal(answer.at('result.serverInfo.version'), version);
    },
  },
  'tools/call accepts every listed name; an unlisted name is -32602': {
    sentence: 'tools/list at run time is the catalog that counts for the deployed version.',
    async run(t, world) {
      const names = await world.toolNames({});
      const unknown: string[] = [];
      for (const name of names)
        if ((await world.tool({}, name)).at('error.code') === -32602) unknown.push(name);
      t.same(unknown, []);
      for (const name of ['wallet_nothing', 'toString', ''])
        t.equal((await world.tool({}, name)).at('error.code'), -32602, name);
    },
  },
  'the version in a module’s path is forwarded unchanged, independent of other modules': {
    sentence: 'The versions of modules are their own.',
    async run(t, world) {
      const { auth } = await world.agent();
      for (const version of ['v1', 'v2', 'v17']) {
        expectOk(version, await world.get(`/core/${version}/things/list`, auth));
        t.equal(world.core.last.url, `/core/${version}/things/list`);
      }
      t.equal((await world.get('/wallet/v1/balance/get', auth)).status, 200);
    },
  },
});
