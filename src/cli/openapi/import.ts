/** The command `import-openapi`: rows of `McpTools` of an OpenAPI document, printed for review. Nothing of it runs later. */
import { parseArgs } from 'node:util';
import { UsageError } from '../../config/load.ts';
import { MODULE_NAME } from '../../domain/config/configuration.ts';
import { VERSION } from '../output.ts';
import { openDocuments, ReferenceFault } from './documents.ts';
import { type ApiOperation, operationsOf } from './operations.ts';
import { printed } from './print.ts';
import { type ImportedRow, type LeftOutOperation, namesOf, rowOf } from './rows.ts';

interface Wanted {
  readonly source: string;
  readonly module: string;
  readonly tags: readonly string[];
  readonly only: readonly string[];
}

/** The text that the command prints. Throws `UsageError` for a document that cannot be read, or has nothing that is wanted. */
export async function importedText(args: readonly string[]): Promise<string> {
  const { source, module, tags, only } = wantedOf(args);
  const documents = await openDocuments(source);
  const operations = operationsIn(documents);
  const names = namesOf(operations, module);
  const isNamed = (operation: ApiOperation) =>
    (operation.id !== undefined && only.includes(operation.id)) || only.includes(names.get(operation) ?? '');
  for (const each of only)
    if (!operations.some(({ id }) => id === each) && ![...names.values()].includes(each))
      throw new UsageError(`${source} has no operation ${JSON.stringify(each)}`);
  const chosen = operations.filter(
    (operation) =>
      (only.length === 0 || isNamed(operation)) &&
      (tags.length === 0 || operation.tags.some((tag) => tags.includes(tag))),
  );
  if (chosen.length === 0) throw new UsageError(`${source} has no operation that is wanted`);
  const rows: ImportedRow[] = [];
  const leftOut: LeftOutOperation[] = [];
  for (const operation of chosen) {
    if (operation.isDeprecated && !isNamed(operation)) {
      leftOut.push({ operation, reason: 'it is deprecated; --only takes it nevertheless' });
      continue;
    }
    const made = rowOf(documents, operation, names.get(operation) ?? '', module);
    if ('row' in made) rows.push(made);
    else leftOut.push(made);
  }
  return printed({ documents, source, module, version: VERSION, rows, leftOut });
}

function operationsIn(documents: Awaited<ReturnType<typeof openDocuments>>): ApiOperation[] {
  try {
    return operationsOf(documents);
  } catch (error) {
    if (error instanceof ReferenceFault) throw new UsageError(error.message);
    throw error;
  }
}

function wantedOf(args: readonly string[]): Wanted {
  const { values, positionals } = parsed(args);
  const { module, tag: tags = [], only = [] } = values;
  const [source, more] = positionals;
  if (source === undefined || more !== undefined || module === undefined)
    throw new UsageError(
      'import-openapi needs one document and a module: import-openapi FILE|URL --module NAME',
    );
  if (!new RegExp(MODULE_NAME).test(module))
    throw new UsageError('--module needs a lower-case letter, then up to 31 of a to z, 0 to 9 and "-"');
  return {
    source,
    module,
    tags,
    only: only.flatMap((each) => each.split(',')).filter((each) => each !== ''),
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        module: { type: 'string' },
        tag: { type: 'string', multiple: true },
        only: { type: 'string', multiple: true },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error));
  }
}
