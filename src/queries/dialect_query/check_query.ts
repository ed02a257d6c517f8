import { compileQuery } from '@exportd/dialect/compile/compile_query';
import { compilerProject } from '../dialect_reader.ts';
import { withFieldPath } from '../expressions.ts';
import { anyType } from '../inferred_types.ts';
import type { CheckTask } from '../query_executor.ts';
import { placeholdersOf, usedVariables } from './placeholders.ts';

/**
 * Compiles a text of the dialect, with `{filters}` that select everything and variables without a value.
 * @throws QueryError `dialect_error`
 */
export function checkQuery({ query, infersTypes, project, now, schema }: CheckTask): void {
  const checked = infersTypes ? { ...schema, inference: anyType } : schema;
  const ofProject = compilerProject({ project, now, schema: checked });
  const asked = { kind: 'DialectQuery', query } as const;
  const variables = Object.fromEntries(usedVariables(asked).map(({ code_name }) => [code_name, null]));
  const placeholders = placeholdersOf(asked, { project, now, variables });
  withFieldPath(null, () => compileQuery(query, ofProject, { placeholders }));
}
