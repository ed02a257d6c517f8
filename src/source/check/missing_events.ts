import type { SourceRole } from './check_rights.ts';
import { draftView } from './draft_view.ts';
import { readRelationFacts } from './relation_facts.ts';
import type { DraftView, ReadCatalog, SourceFinding } from './report.ts';

/** What a person chose for the drafts of views. */
export interface DraftChoice {
  /** The project of a table without a column for it; 1 by default. */
  readonly teamId?: number | undefined;
  /** The table of the events, one of `SourceReport.tables`, while the configured relation does not exist. */
  readonly table?: string | undefined;
}

/** The finding for a relation that does not exist. */
export const missingRelation = (relation: string, setting: string, hasTables: boolean): SourceFinding => ({
  level: 'error',
  subject: relation,
  column: null,
  message: `It does not exist. ${hasTables ? `Create it as a view over one of your tables, or set` : 'Set'} ${setting} to the name of your table or view.`,
  sql: null,
});

/**
 * Lists the relations that may have the events, and drafts a view over the chosen one. The view has the configured name, so
 * that no setting has to change.
 */
export async function replaceMissingEvents(
  read: ReadCatalog,
  relation: string,
  { role: reader }: SourceRole,
  { teamId, table }: DraftChoice,
): Promise<{ readonly tables: readonly string[]; readonly view: DraftView | null }> {
  const tables = await findTables(read);
  const isListed = table !== undefined && tables.includes(table);
  const facts = isListed ? await readRelationFacts(read, table) : 'missing';
  if (typeof facts === 'string') return { tables, view: null };
  return { tables, view: draftView('events', facts, [], { teamId, reader, name: unquoted(relation) }) };
}

/** The name without quotes that it does not need. */
const unquoted = (relation: string): string => relation.replaceAll(/"([a-z_][a-z0-9_]*)"/g, '$1');

/** More tables than a person reads. */
const maxTables = 50;

/** The relations that the role reads and that have a column of a time, without partitions. Those with most rows come first. */
async function findTables(read: ReadCatalog): Promise<string[]> {
  const tables = await read<{ name: string }>(
    `select format('%I.%I', nspname, relname) as name
     from pg_catalog.pg_class relation join pg_catalog.pg_namespace namespace on namespace.oid = relnamespace
     where relkind in ('r', 'p', 'v', 'm', 'f') and not relispartition
       and nspname !~ '^pg_' and nspname not in ('information_schema', 'exportd')
       and has_schema_privilege(namespace.oid, 'usage') and has_table_privilege(relation.oid, 'select')
       and exists (select from pg_catalog.pg_attribute
         where attrelid = relation.oid and attnum > 0 and not attisdropped
           and atttypid in ('timestamptz'::regtype, 'timestamp'::regtype))
     order by reltuples desc, name limit ${maxTables}`,
  );
  return tables.map(({ name }) => name);
}
