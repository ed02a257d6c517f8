import type { CheckedRelation, SourceFinding, SourceReport } from '../source/check/report.ts';
import { table } from './output.ts';

/** Formats what a check of the source found, with the SQL that fixes it. */
export function sourceReportLines({ relations, findings, views, tables }: SourceReport): string[] {
  const statements = findings.flatMap(({ sql }) => sql ?? []);
  return [
    ...table(['', 'relation', 'found'], [...relationRows(relations, findings), ...findings.map(findingRow)]),
    ...(statements.length === 0
      ? []
      : ['', '-- SQL that fixes it, for the owner of the relations:', ...new Set(statements)]),
    ...(tables.length === 0
      ? []
      : [
          '',
          '-- Tables that may have the events. "exportd source check --events <table>" drafts a view over one:',
        ]),
    ...tables.map((name) => `--   ${name}`),
    ...views.flatMap(({ setting, name, sql, to_choose }) => [
      '',
      `-- A view with all columns, which leaves the relation unchanged. Then set ${setting}=${name} and check again.`,
      ...(to_choose.length === 0 ? [] : [`-- Choose first: ${to_choose.join(', ')}.`]),
      sql,
    ]),
  ];
}

/** The relations without an error. */
const relationRows = (
  relations: readonly CheckedRelation[],
  findings: readonly SourceFinding[],
): string[][] =>
  relations
    .filter(
      ({ relation }) => !findings.some(({ level, subject }) => level === 'error' && subject === relation),
    )
    .map(({ relation, kind, setting }) =>
      kind === null
        ? ['-', relation, `does not exist: persons are neither exported nor found by queries (${setting})`]
        : ['ok', relation, kind],
    );

const findingRow = ({ level, subject, message }: SourceFinding): string[] => [
  level === 'error' ? 'FAILED' : 'warning',
  subject,
  message,
];
