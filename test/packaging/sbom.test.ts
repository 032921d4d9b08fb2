/** The bill of materials of the package: what CycloneDX 1.6 requires, and every package of a run. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { plainEnvironment } from '../../kit/launch.ts';
import { outputOf } from '../../kit/run-sync.ts';
import { closureOf, nameOf, readLock } from '../../tools/packaging/lock.ts';
import { SBOM_FILE, type Sbom, sbomOf } from '../../tools/packaging/print-sbom.ts';

const packages = readLock();
const sbom = sbomOf(packages);

/** Returns the faults by the schema of CycloneDX 1.6 in the fields that we write. One line for each fault. */
function schemaFaults(value: Sbom): string[] {
  const faults: string[] = [];
  const expect = (isMet: boolean, fault: string) => {
    if (!isMet) faults.push(fault);
  };
  expect(value.bomFormat === 'CycloneDX', 'bomFormat');
  expect(value.specVersion === '1.6', 'specVersion');
  expect(value.$schema === 'http://cyclonedx.org/schema/bom-1.6.schema.json', '$schema');
  expect(Number.isInteger(value.version) && value.version >= 1, 'version');
  const components = [value.metadata.component, ...value.components];
  for (const component of components) {
    const { type, name, version, scope, purl, hashes = [], licenses = [] } = component;
    const ref = component['bom-ref'];
    expect(['application', 'library'].includes(type), `${ref}: type`);
    expect(name.length > 0 && version.length > 0, `${ref}: name or version`);
    expect(['required', 'optional'].includes(scope), `${ref}: scope`);
    expect(/^pkg:npm\/(?:%40[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+[\w.+-]*$/.test(purl), `${ref}: purl`);
    for (const { alg, content } of hashes)
      expect(alg === 'SHA-512' && /^[0-9a-f]{128}$/.test(content), `${ref}: hash`);
    for (const license of licenses)
      expect(
        'license' in license ? /^[\w.+-]+$/.test(license.license.id) : license.expression.includes(' '),
        `${ref}: license`,
      );
  }
  const refs = components.map((component) => component['bom-ref']);
  expect(new Set(refs).size === refs.length, 'bom-ref: twice');
  for (const { ref, dependsOn } of value.dependencies)
    expect(
      [ref, ...dependsOn].every((each) => refs.includes(each)),
      `${ref}: a dependency without component`,
    );
  expect(new Set(value.dependencies.map(({ ref }) => ref)).size === refs.length, 'dependencies: not all');
  return faults;
}

function plant(change: (value: { -readonly [Field in keyof Sbom]: Sbom[Field] }) => void): string[] {
  const planted = structuredClone(sbom);
  change(planted);
  return schemaFaults(planted);
}

// covers S135
t.test('sbom: has what CycloneDX 1.6 requires', async (t) => {
  t.same(schemaFaults(sbom), []);
  const [first, ...others] = sbom.components;
  if (first === undefined) throw new Error('no components');
  t.match(
    plant((value) => Object.assign(value, { bomFormat: 'Cyclone' })),
    ['bomFormat'],
  );
  t.match(plant((value) => (value.components = others)).join(), /without component/);
  t.match(
    plant((value) => (value.components = [...sbom.components, first])),
    ['bom-ref: twice'],
  );
  const nameless = { ...first, name: '', hashes: [{ alg: 'SHA-512', content: 'ab' }] } as const;
  t.equal(plant((value) => (value.components = [nameless, ...others])).length, 2, 'name and hash');
});

/** Name and version of every package below `dependencies` of the project, by npm. */
function namesOf(t: Test): string[] {
  const args = ['ls', '--omit=dev', '--package-lock-only', '--all', '--json'];
  type Node = { readonly version?: string; readonly dependencies?: Readonly<Record<string, Node>> };
  const root = JSON.parse(outputOf('npm', args, { env: plainEnvironment() })) as Node;
  const names = new Set<string>();
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop())
    for (const [name, below] of Object.entries(node.dependencies ?? {})) {
      if (below.version !== undefined) names.add(`${name}@${below.version}`);
      open.push(below);
    }
  t.ok(names.size > 100, `${names.size} packages`);
  return [...names];
}

// covers S135
t.test('sbom: lists every package that npm installs for a run, and none for tests', async (t) => {
  // The lock has folder names, and a component the name of the package.
  const folders = closureOf([''], packages).filter((path) => path !== '');
  const byFolder = new Map(
    folders.map((path) => [path.slice(path.lastIndexOf('node_modules/') + 13), nameOf(path, packages)]),
  );
  const listed = sbom.components.map(({ group, name, version }) =>
    [...(group === undefined ? [] : [group]), `${name}@${version}`].join('/'),
  );
  const wanted = namesOf(t).map((each) => {
    const at = each.lastIndexOf('@');
    return `${byFolder.get(each.slice(0, at)) ?? each.slice(0, at)}${each.slice(at)}`;
  });
  t.same(
    wanted.filter((each) => !listed.includes(each)),
    [],
  );
  t.ok(
    listed.some((each) => each.startsWith('pg@')),
    'tests need it too',
  );
  t.notOk(listed.some((each) => /^(?:tap|typescript|@biomejs\/biome)@/.test(each)));
});

// covers S135
t.test('sbom: prepack writes it into the package, the same bytes for the same lock', async (t) => {
  const { scripts, files } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    scripts: Record<string, string>;
    files: string[];
  };
  t.match(scripts['prepack'], /&& node build\/tools\/packaging\/print-sbom\.js$/);
  t.ok(files.includes(SBOM_FILE));
  const file = `${t.testdir()}/sbom.json`;
  outputOf(process.execPath, ['build/tools/packaging/print-sbom.js', file], { env: plainEnvironment() });
  t.equal(readFileSync(file, 'utf8'), `${JSON.stringify(sbom, null, 2)}\n`);
});
