/** Two validators accept the OpenAPI document, and each finds a planted fault. */
import t from 'tap';
import { describeApi } from '../../../../src/io/http/openapi/document.ts';
import { routeTable } from '../../../support/route-table.ts';

interface Problem {
  readonly ruleId: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** The used part of the two packages. */
interface Linter {
  createConfig(rules: {
    extends: readonly string[];
    rules: Readonly<Record<string, 'off'>>;
  }): Promise<unknown>;
  lintFromString(given: { source: string; absoluteRef: string; config: unknown }): Promise<Problem[]>;
}
interface SchemaValidator {
  readonly Validator: new () => {
    readonly version: string;
    validate(document: object): Promise<{ valid: boolean; errors?: unknown }>;
  };
}

/** Imported by a computed name, so that the tests compile without these packages. */
async function load<Package>(name: string): Promise<Package> {
  return (await import(name)) as Package;
}

const { createConfig, lintFromString } = await load<Linter>('@redocly/openapi-core');
const { Validator } = await load<SchemaValidator>('@seriousme/openapi-schema-validator');

type Loose = { [key: string]: Loose };

const TABLE = routeTable();
const describe = () =>
  describeApi(TABLE, { title: 'test gateway', version: '0.0.1', baseUrl: 'https://gate.test' }) as Loose;

/** Violations of the linter's strict rules with their location. */
async function lint(document: object): Promise<string[]> {
  // A route that a browser follows answers with a redirect alone.
  const rules = { 'operation-2xx-response': 'off' } as const;
  const config = await createConfig({ extends: ['recommended-strict'], rules });
  const problems = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: 'openapi.json',
    config,
  });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
}

// covers R2
t.test('openapi: redocly reports no fault, its checks of examples included', async (t) => {
  t.same(await lint(describe()), []);
  const planted = describe();
  const login = planted['paths']?.['/auth/v1/mcp_login']?.['post'] as Loose;
  delete login['operationId'];
  const patch = planted['paths']?.['/auth/v1/login_phone']?.['post']?.['requestBody'] as Loose;
  Object.assign(patch['content']?.['application/json'] ?? {}, { example: { phone: 7 } });
  const found = (await lint(planted)).map((line) => line.split(':')[0]);
  t.same(new Set(found), new Set(['operation-operationId', 'no-invalid-media-type-examples']));
});

// covers R2
t.test('openapi: the schema of OpenAPI 3.1 reports no fault', async (t) => {
  const judge = async (document: object) => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(document);
    return { valid, errors, version: validator.version };
  };
  t.same(await judge(describe()), { valid: true, errors: undefined, version: '3.1' });
  const planted = describe();
  Object.assign(planted['paths']?.['/mcp']?.['post'] ?? {}, { responses: 'none' });
  t.equal((await judge(planted)).valid, false);
});
