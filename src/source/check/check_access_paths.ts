import { type RelationRole, sourceContract } from '../contract.ts';
import type { AccessPath } from '../contract_types.ts';
import { quotedName } from './check_columns.ts';
import type { RelationFacts } from './relation_facts.ts';
import type { ReadCatalog, SourceFinding } from './report.ts';

/** A node of a plan, as far as it is read. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Schema?: string;
  readonly Alias?: string;
  readonly Output?: readonly string[];
  readonly Plans?: readonly PlanNode[];
}

/** Nodes that read or sort more rows than a page has. Incremental sorts read few. */
const expensiveNodes: ReadonlySet<string> = new Set([
  ...['Seq Scan', 'Sample Scan', 'Sort', 'Aggregate', 'WindowAgg', 'Unique', 'SetOp', 'Hash Join'],
]);

/** With these, PostgreSQL plans an expensive node only if no index avoids it, however few rows there are now. */
const preferIndexes = { enable_seqscan: 'off', enable_bitmapscan: 'off', enable_sort: 'off' };

/** Finds the ways in which exports look for rows that no index supports, and the indexes that they need. */
export async function checkAccessPaths(
  read: ReadCatalog,
  role: RelationRole,
  facts: RelationFacts,
  teamId: number,
): Promise<SourceFinding[]> {
  // Its rows are found by the other server.
  if (facts.kind === 'foreign table') return [];
  const findings: SourceFinding[] = [];
  for (const path of sourceContract[role].accessPaths) {
    const plan = await planOf(read, statementOf(path, facts, teamId), preferIndexes);
    const expensive = nodesOf(plan).find((node) => expensiveNodes.has(node['Node Type']));
    if (expensive)
      findings.push({
        level: 'warning',
        subject: facts.name,
        column: null,
        message: `No index finds rows by (${path.columns.join(', ')}), so that ${path.without} (${describeNode(expensive)}).`,
        sql: await indexStatement(read, facts, path),
      });
  }
  return findings;
}

const statementOf = ({ where, orderBy }: AccessPath, { name }: RelationFacts, teamId: number): string => {
  const order = orderBy === null ? '' : ` order by ${orderBy} fetch first 1000 rows with ties`;
  return `select 1 from ${name} r where ${where.replace('$team', String(teamId))}${order}`;
};

async function planOf(
  read: ReadCatalog,
  statement: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<PlanNode | undefined> {
  const [row] = await read<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
    `explain (format json, verbose, costs off) ${statement}`,
    [],
    settings,
  );
  return row?.['QUERY PLAN'][0]?.Plan;
}

const nodesOf = (node: PlanNode | undefined): PlanNode[] =>
  node ? [node, ...(node.Plans ?? []).flatMap(nodesOf)] : [];

const describeNode = (node: PlanNode): string =>
  node['Relation Name'] === undefined
    ? node['Node Type']
    : `${node['Node Type']} on ${node['Relation Name']}`;

/** The statement that creates the index of an access path; null if a view has more than one table. */
async function indexStatement(
  read: ReadCatalog,
  facts: RelationFacts,
  { columns }: AccessPath,
): Promise<string | null> {
  const parts = columns.map((column) => {
    const [name = '', ...collation] = column.split(' ');
    return { name, suffix: collation.length === 0 ? '' : ` ${collation.join(' ')}` };
  });
  if (facts.kind !== 'view') {
    // PostgreSQL does not create the index of a partitioned table concurrently.
    const concurrently = facts.kind === 'partitioned table' ? '' : ' concurrently';
    const list = parts.map(({ name, suffix }) => `${quotedName(name)}${suffix}`);
    return `create index${concurrently} on ${facts.name} (${list.join(', ')});`;
  }
  const plan = await planOf(
    read,
    `select ${parts.map(({ name }) => `r.${quotedName(name)}`).join(', ')} from ${facts.name} r`,
  );
  const { Output: outputs, Alias: alias, 'Relation Name': table, Schema: schema, Plans: plans } = plan ?? {};
  if (!outputs || alias === undefined || table === undefined || schema === undefined || plans) return null;
  const list = outputs.flatMap((output, index) => {
    const expression = withoutAlias(output, alias);
    // A constant needs no index.
    if (expression === output) return [];
    const isColumn = /^(\w+|"([^"]|"")+")$/.test(expression);
    return [`${isColumn ? expression : `(${expression})`}${parts[index]?.suffix ?? ''}`];
  });
  return list.length === 0
    ? null
    : `create index concurrently on ${quotedName(schema)}.${quotedName(table)} (${list.join(', ')});`;
}

/** An expression of a plan without the name of the only table that it reads. */
const withoutAlias = (expression: string, alias: string): string =>
  expression.replaceAll(`${alias}.`, '').replaceAll(`${quotedName(alias)}.`, '');
