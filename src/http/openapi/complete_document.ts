import type { Examples } from './examples/example.ts';
import { errorExamples } from './examples/errors.ts';
import { examples } from './examples/examples.ts';

/** The parts of an OpenAPI document that are completed here. */
interface Document {
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}
interface Operation {
  tags?: readonly string[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, Response>>;
}
interface Response {
  description?: string;
  readonly content?: Content;
}
type Content = Readonly<Record<string, { examples?: Readonly<Record<string, NamedExample>> }>>;
interface NamedExample {
  readonly summary: string;
  readonly value: unknown;
}

/** The groups of operations, in the order of the page, by the start of their paths below a project. */
const tags = [
  { name: 'Batch exports', prefixes: ['/batch_exports'] },
  { name: 'Runs', prefixes: ['/batch_exports/{batch_export_id}/runs'] },
  { name: 'Backfills', prefixes: ['/batch_exports/{batch_export_id}/backfills'] },
  {
    name: 'Intervals and logs',
    prefixes: ['/batch_exports/{batch_export_id}/intervals', '/batch_exports/{id}/logs'],
  },
  { name: 'Webhooks', prefixes: ['/webhooks'] },
  { name: 'Queries', prefixes: ['/query'] },
  { name: 'Dashboards', prefixes: ['/dashboards'] },
  { name: 'Projects', prefixes: ['/api/projects'] },
] as const;

/** The tags of the document. */
export const documentTags = tags.map(({ name }) => ({ name }));

const descriptions: Readonly<Record<string, string>> = {
  '200': 'Success.',
  '201': 'Created. `Location` is its URL.',
  '202': 'Accepted and not applied yet.',
  '204': 'Success, without a body.',
  '4XX': 'The request was rejected. `code` says why, `attr` names the invalid field.',
  '5XX': 'The request could not be carried out. Retry it; commands with the same `Idempotency-Key`.',
};

/** The path below the project, or the whole path of an operation that has no project in it. */
export const pathInProject = (path: string): string =>
  path.replace(/^\/api\/(projects|environments)\/\{project_id\}/, '');

/** Adds tags, descriptions of responses and examples to each operation of a document, in place. */
export function completeDocument<Given extends object>(document: Given): Given {
  const { paths } = document as Document;
  for (const [path, operations] of Object.entries(paths ?? {}))
    for (const [method, operation] of Object.entries(operations))
      completeOperation(method.toUpperCase(), pathInProject(path), operation);
  return document;
}

function completeOperation(method: string, path: string, operation: Operation): void {
  const own = examples[`${method} ${path}`];
  operation.tags = [tagOf(path)];
  addExamples(operation.requestBody?.content, own?.body);
  const errors = errorExamples(
    {
      hasPathId: path.includes('{'),
      hasBody: operation.requestBody !== undefined,
      isCommand: operation.responses?.['202'] !== undefined,
      readsSource: method === 'POST' && /\/backfills?$/.test(path),
      isQuery: (method === 'POST' && path === '/query') || path === '/query/draft_sql',
      isDraft: path === '/query/draft_sql',
      isTest: path.endsWith('/test'),
    },
    own?.errors,
  );
  for (const [status, response] of Object.entries(operation.responses ?? {})) {
    const isError = status === '4XX' || status === '5XX';
    addExamples(response.content, isError ? errors[status] : own?.responses?.[Number(status)]);
    const description = descriptions[status];
    if (description !== undefined) response.description = description;
  }
}

function addExamples(content: Content | undefined, given: Examples | undefined): void {
  if (content === undefined || given === undefined) return;
  const named = Object.entries(given).map(([name, value]): [string, NamedExample] => [
    name,
    { summary: name.replaceAll('_', ' '), value },
  ]);
  for (const media of Object.values(content)) media.examples = Object.fromEntries(named);
}

/** The tag with the longest matching prefix. */
function tagOf(path: string): string {
  const matching = tags.flatMap(({ name, prefixes }) =>
    prefixes.filter((prefix) => path.startsWith(prefix)).map((prefix) => ({ name, length: prefix.length })),
  );
  return matching.sort((one, other) => other.length - one.length)[0]?.name ?? 'Other';
}
