import pg from 'pg';
import { keyColumnNames, type RelationRole, sourceContract, unconvertedTypes } from '../contract.ts';
import type { ContractColumn } from '../contract_types.ts';
import { findColumn, type FoundColumn, type RelationFacts } from './relation_facts.ts';
import { safeMessage } from './safe_message.ts';
import type { ReadCatalog, SourceFinding } from './report.ts';

/** Columns that exist with another type than the contract's, or not at all. */
export interface ColumnProblem {
  readonly column: ContractColumn;
  /** What was found; undefined if the relation lacks the column. */
  readonly found: FoundColumn | undefined;
  readonly message: string;
}

export const quotedName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const usesOf = (column: ContractColumn): readonly string[] => column.uses(`r.${quotedName(column.name)}`);

/** The columns whose type PostgreSQL rejects where exports use them, and those that are missing. */
export async function findColumnProblems(
  read: ReadCatalog,
  role: RelationRole,
  facts: RelationFacts,
): Promise<ColumnProblem[]> {
  const { columns } = sourceContract[role];
  const present = columns.filter(({ name }) => findColumn(facts, name));
  const missing = columns
    .filter((column) => !present.includes(column) && column.optional !== true)
    .map((column) => ({ column, found: undefined, message: `Column ${column.name} is missing.` }));
  const rejected: ColumnProblem[] = [];
  // One statement is enough for a relation that fits.
  if (await rejectionOf(read, facts, present.flatMap(usesOf)))
    for (const column of present) {
      const rejection = await rejectionOf(read, facts, usesOf(column));
      const found = findColumn(facts, column.name);
      // A missing right is a finding of its own.
      if (rejection?.code?.startsWith('42') === true && rejection.code !== '42501')
        rejected.push({
          column,
          found,
          message: `Column ${column.name} has type ${found?.type ?? 'unknown'}, exports need ${column.type}: ${safeMessage(rejection)}.`,
        });
    }
  return [...missing, ...rejected];
}

/** PostgreSQL's error when it plans to compute expressions of a relation's rows. */
async function rejectionOf(
  read: ReadCatalog,
  { name }: RelationFacts,
  expressions: readonly string[],
): Promise<pg.DatabaseError | undefined> {
  try {
    await read(`explain select ${expressions.join(', ')} from ${name} r`);
    return undefined;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error;
    throw error;
  }
}

/** Columns that fit, but are converted in each row or may be null. */
export function warnOfColumns(
  role: RelationRole,
  facts: RelationFacts,
  problems: readonly ColumnProblem[],
): SourceFinding[] {
  const subject = facts.name;
  return sourceContract[role].columns.flatMap((column): SourceFinding[] => {
    const { name } = column;
    const found = findColumn(facts, name);
    if (!found || problems.some((problem) => problem.column === column)) return [];
    const findings: SourceFinding[] = [];
    if (!unconvertedTypes[column.type].includes(found.type))
      findings.push({
        level: 'warning',
        subject,
        column: name,
        message: `Column ${name} has type ${found.type} and is converted to ${column.type} in each row. A value that cannot be converted fails its run.`,
        sql: null,
      });
    if (found.type === 'timestamp without time zone')
      findings.push({
        level: 'warning',
        subject,
        column: name,
        message: `Column ${name} has no time zone and is read as UTC.`,
        sql: null,
      });
    if (facts.kind.endsWith('table') && !found.not_null && keyColumnNames.has(name))
      findings.push({
        level: 'warning',
        subject,
        column: name,
        message: `Column ${name} may be null. A row without ${name} is never exported, or fails its run.`,
        sql: `alter table ${subject} alter column ${quotedName(name)} set not null;`,
      });
    return findings;
  });
}
