import type { Grouping } from '../resolve/scope.ts';
import type { TypedQuery, Value } from '../resolve/value.ts';
import type { CompiledFrom } from './compiled_from.ts';
import type { SelectParts } from './select_assembly.ts';

/** The compiled clauses of a SELECT. */
interface SelectClauses {
  readonly from: CompiledFrom | null;
  readonly conditions: readonly Value[];
  readonly grouping: Grouping;
  readonly having: Value | null;
  readonly outputs: Pick<SelectParts, 'outputs' | 'order' | 'qualify' | 'limitBy' | 'distinctOn'>;
}

/** The typed representation of a SELECT, in the order in which its clauses are computed. */
export function typedSelect({ from, conditions, grouping, having, outputs }: SelectClauses): TypedQuery {
  const clauses = [
    { name: 'where', values: conditions },
    { name: 'group by', values: grouping.keys.map(({ value }) => value) },
    { name: 'having', values: having === null ? [] : [having] },
    { name: 'select', values: outputs.outputs.map(({ value }) => value) },
    { name: 'qualify', values: outputs.qualify === null ? [] : [outputs.qualify] },
    { name: 'distinct on', values: outputs.distinctOn.map(({ value }) => value) },
    { name: 'order by', values: outputs.order.map(({ value }) => value) },
    { name: 'limit by', values: outputs.limitBy.map(({ value }) => value) },
  ];
  return {
    operation: 'query',
    sources: from?.sources ?? [],
    clauses: clauses.filter(({ values }) => values.length > 0),
  };
}
