/** The description of the API, made from the route table that it stands in. */
import { describeApi } from '../http/openapi.ts';
import { type AnyRoute, defineRoute, Reply } from '../http/route.ts';

/** `routes`: the table without this route; the description names both. */
export function createDocsRoutes(routes: readonly AnyRoute[]): AnyRoute[] {
  let text: string | undefined;
  const own: AnyRoute[] = ['/docs/openapi.json', '/docs/swagger/openapi.json'].map((path) =>
    defineRoute({
      method: 'GET',
      path,
      summary: 'This description, OpenAPI 3.1',
      group: 'docs',
      auth: 'optional',
      limits: [],
      errors: [],
      handle({ site }) {
        const facts = { title: `${site.project} gateway`, version: site.version, baseUrl: site.baseUrl };
        text ??= JSON.stringify(describeApi([...routes, ...own], facts));
        return new Reply(200, text, 'application/json');
      },
    }),
  );
  return own;
}
