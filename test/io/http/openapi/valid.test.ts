/** The description of the API before two validators: neither finds anything, and each finds what is planted. */
import t from 'tap';
import { describeApi } from '../../../../src/io/http/openapi/document.ts';
import { routeTable } from '../../../support/route-table.ts';

interface Problem {
  readonly ruleId: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** As much of the two packages as is used here. */
interface Linter {
  createConfig(rules: { extends: readonly string[] }): Promise<unknown>;
  lintFromString(given: { source: string; absoluteRef: string; config: unknown }): Promise<Problem[]>;
}
interface SchemaValidator {
  readonly Validator: new () => {
    readonly version: string;
    validate(document: object): Promise<{ valid: boolean; errors?: unknown }>;
  };
}

/** By a name that is no literal, so that the rest of the tests compiles where they are not installed. */
async function load<Package>(name: string): Promise<Package> {
  return (await import(name)) as Package;
}

const { createConfig, lintFromString } = await load<Linter>('@redocly/openapi-core');
const { Validator } = await load<SchemaValidator>('@seriousme/openapi-schema-validator');

type Loose = { [key: string]: Loose };

const TABLE = routeTable();
const describe = () =>
  describeApi(TABLE, { title: 'test gateway', version: '0.0.1', baseUrl: 'https://gate.test' }) as Loose;

/** Rules that were broken, with the place, by the strict set of the linter. */
async function lint(document: object): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: 'openapi.json',
    config,
  });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
}

t.test('openapi: redocly finds nothing, its checks of examples included', async (t) => {
  t.same(await lint(describe()), []);
  const planted = describe();
  const login = planted['paths']?.['/auth/v1/mcp_login']?.['post'] as Loose;
  delete login['operationId'];
  const patch = planted['paths']?.['/auth/v1/login_phone']?.['post']?.['requestBody'] as Loose;
  Object.assign(patch['content']?.['application/json'] ?? {}, { example: { phone: 7 } });
  const found = (await lint(planted)).map((line) => line.split(':')[0]);
  t.same(new Set(found), new Set(['operation-operationId', 'no-invalid-media-type-examples']));
});

t.test('openapi: the schema of OpenAPI 3.1 finds nothing', async (t) => {
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
