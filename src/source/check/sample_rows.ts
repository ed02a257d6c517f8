import pg from 'pg';
import { keyColumnNames, type RelationRole, sourceContract } from '../contract.ts';
import type { ContractColumn } from '../contract_types.ts';
import { quotedName, type ColumnProblem } from './check_columns.ts';
import { findColumn, type RelationFacts } from './relation_facts.ts';
import type { ReadCatalog, SourceFinding } from './report.ts';
import { safeMessage } from './safe_message.ts';

/** How many rows are read, in the order in which PostgreSQL finds them. */
const sampledRows = 10_000;
const sampledRowsText = sampledRows.toLocaleString('en');
const statementCancelled = '57014';

/** What some rows of a relation show that the catalog does not. */
export interface RowSample {
  readonly findings: readonly SourceFinding[];
  /** A project with rows; 1 if there are none. */
  readonly team_id: number;
}

/** Reads some rows as exports do: values that cannot be converted, and nulls where the catalog does not exclude them. */
export async function sampleRows(
  read: ReadCatalog,
  role: RelationRole,
  facts: RelationFacts,
  problems: readonly ColumnProblem[],
): Promise<RowSample> {
  const columns = sourceContract[role].columns.filter(
    (column) => findColumn(facts, column.name) && !problems.some((problem) => problem.column === column),
  );
  const subject = facts.name;
  try {
    const found = await readNulls(read, facts, columns);
    return { team_id: found.team ?? 1, findings: columns.flatMap((column) => nullFinding(column, found)) };
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    if (error.code === statementCancelled) return { team_id: 1, findings: [slowFinding(subject)] };
    const findings: SourceFinding[] = [];
    for (const column of columns) {
      const failure = await failureOf(() => readNulls(read, facts, [column]));
      if (failure) findings.push(failedFinding(column, failure));
    }
    return { team_id: 1, findings: findings.length > 0 ? findings : [failedFinding(null, error)] };
  }

  function nullFinding(column: ContractColumn, found: SampledNulls): SourceFinding[] {
    const { name, nullable } = column;
    if (nullable || found.nulls[name] !== true) return [];
    const isKey = keyColumnNames.has(name);
    return [
      {
        level: isKey ? 'error' : 'warning',
        subject,
        column: name,
        message: isKey
          ? `Column ${name} is null in some rows. They are never exported, or fail their run: fill it in, or exclude them with a view.`
          : `Column ${name} is null in some rows. They are exported with null, and queries expect a value.`,
        sql: null,
      },
    ];
  }

  function failedFinding(column: ContractColumn | null, error: pg.DatabaseError): SourceFinding {
    const what = column === null ? 'A row' : `A value of column ${column.name}`;
    return {
      level: 'error',
      subject,
      column: column?.name ?? null,
      message: `${what} cannot be read as ${column?.type ?? 'exports do'}: ${safeMessage(error)}. Correct it, or exclude its row with a view.`,
      sql: null,
    };
  }
}

interface SampledNulls {
  readonly team: number | null;
  readonly nulls: Readonly<Record<string, boolean | null>>;
}

async function readNulls(
  read: ReadCatalog,
  { name }: RelationFacts,
  columns: readonly ContractColumn[],
): Promise<SampledNulls> {
  const names = columns.map((column) => quotedName(column.name));
  const nulls = columns.map((column) => {
    const quoted = quotedName(column.name);
    // As exports read it, so that a value that cannot be converted is found.
    return `'${column.name}', bool_or((${column.uses(`r.${quoted}`)[0] ?? quoted}) is null)`;
  });
  const team = columns.some((column) => column.name === 'team_id') ? 'min(r.team_id)::int' : 'null::int';
  const [row] = await read<SampledNulls>(
    `select ${team} as team, json_build_object(${nulls.join(', ')}) as nulls
     from (select ${names.map((column) => `source.${column}`).join(', ')} from ${name} source limit ${sampledRows}) r`,
  );
  return row ?? { team: null, nulls: {} };
}

async function failureOf(work: () => Promise<unknown>): Promise<pg.DatabaseError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error;
    throw error;
  }
}

const slowFinding = (subject: string): SourceFinding => ({
  level: 'warning',
  subject,
  column: null,
  message: `Reading ${sampledRowsText} rows exceeded the timeout of the check, so that their values were not checked. Exports page in the order of an index instead.`,
  sql: null,
});
