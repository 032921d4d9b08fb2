/** The manifests of the gateway and of the connector. */
import { readFileSync } from 'node:fs';
import t from 'tap';

interface Manifest {
  readonly version: string;
  readonly dependencies?: object;
  readonly scripts: object;
}

const manifestOf = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;

t.test(
  'connector: its package has the version of the gateway, no dependency and no install script',
  async (t) => {
    const own = manifestOf('packages/connect/package.json');
    t.equal(own.version, manifestOf('package.json').version);
    t.equal(own.dependencies, undefined);
    t.strictSame(Object.keys(own.scripts), ['prepack']);
  },
);
