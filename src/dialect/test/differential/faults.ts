import { type Call, type Expression, type Node, type Query, transform } from '../../ast.ts';
import { parseExpression, parseQuery } from '../../parser/queries.ts';
import { printQuery } from '../../print.ts';
import { compileAsProduct, type CompileForTrial } from './trial.ts';

/** A mistake that a compiler could make: it reads a node as if another were written. */
interface Fault {
  readonly name: string;
  /** The number of cases after which a search with seed 1 soon finds it. */
  readonly after: number;
  readonly change: (node: Node) => Node;
}

const isCall = (node: Node, name: string): node is Call => node.kind === 'call' && node.name.text === name;

const call = (node: Call, name: string, more: readonly Expression[] = []): Call => ({
  ...node,
  name: { ...node.name, text: name },
  arguments: [...node.arguments, ...more],
});

const at = { start: 0, end: 0 } as const;

const callOf = (name: string, argument: Expression): Expression => {
  const made = parseExpression(`${name}(1)`) as Call;
  return { ...made, arguments: [argument] };
};

/** Faults that the differential test must find. */
export const faults: readonly Fault[] = [
  {
    name: '< is read as <=',
    after: 54,
    change: (node) =>
      node.kind === 'comparison' && node.operator === '<' ? { ...node, operator: '<=' } : node,
  },
  {
    name: 'null in a list of IN is ignored',
    after: 6518,
    change: (node) => {
      if (node.kind !== 'comparison' || node.right.kind !== 'tuple') return node;
      const items = node.right.items.filter((item) => item.kind !== 'null');
      return items.length === 0 ? node : { ...node, right: { ...node.right, items } };
    },
  },
  {
    name: 'an interval of hours is one of minutes',
    after: 192,
    change: (node) => (node.kind === 'interval' && node.unit === 'hour' ? { ...node, unit: 'minute' } : node),
  },
  {
    name: 'the sum of no rows is null',
    after: 1121,
    change: (node) => (isCall(node, 'sum') && node.over === null ? call(node, 'sumOrNull') : node),
  },
  {
    name: 'HAVING is ignored',
    after: 33,
    change: (node) =>
      node.kind === 'select' && node.groupBy !== null && node.having !== null
        ? { ...node, having: null }
        : node,
  },
  {
    name: 'a comparison with null is false',
    after: 2,
    change: (node) => {
      if (node.kind !== 'comparison' || node.operator !== '!=') return node;
      const isNotNull = (operand: Expression): Expression => ({
        ...at,
        kind: 'is_null',
        operand,
        negated: true,
      });
      return {
        ...at,
        kind: 'logical',
        operator: 'and',
        operands: [node, isNotNull(node.left), isNotNull(node.right)],
      };
    },
  },
  {
    name: 'LEFT JOIN drops rows without a match',
    after: 2,
    change: (node) =>
      node.kind === 'join' && node.type === 'left' && node.strictness === null
        ? { ...node, type: 'inner' }
        : node,
  },
  {
    name: 'a row that an outer join did not match has no empty texts',
    after: 378,
    change: (node) =>
      node.kind === 'comparison' &&
      node.operator === '=' &&
      node.right.kind === 'string' &&
      node.right.value === '' &&
      node.left.kind === 'field'
        ? { ...node, left: callOf('lower', node.left) }
        : node,
  },
  {
    name: 'LIKE with null is never true',
    after: 933,
    change: (node) => {
      if (node.kind !== 'comparison' || !node.operator.endsWith('like')) return node;
      const isNotNull: Expression = { ...at, kind: 'is_null', operand: node.left, negated: true };
      return { ...at, kind: 'logical', operator: 'and', operands: [node, isNotNull] };
    },
  },
  {
    name: 'ORDER BY of DISTINCT is ignored',
    after: 290,
    change: (node) =>
      node.kind === 'select' && node.distinct && node.limit !== null ? { ...node, orderBy: [] } : node,
  },
  {
    name: 'a default is ignored',
    after: 521,
    change: (node) =>
      isCall(node, 'toFloatOrDefault') || isCall(node, 'toIntOrDefault')
        ? { ...node, arguments: node.arguments.slice(0, 1) }
        : node,
  },
  {
    name: 'days and hours are those of UTC',
    after: 1764,
    change: (node) =>
      ['toDayOfMonth', 'toDayOfWeek', 'toHour', 'toYYYYMMDD'].some((name) => isCall(node, name))
        ? call(node as Call, (node as Call).name.text, [{ ...at, kind: 'string', value: 'UTC' }])
        : node,
  },
  {
    name: 'DISTINCT is ignored in count',
    after: 824,
    change: (node) => (isCall(node, 'count') && node.distinct ? { ...node, distinct: false } : node),
  },
  {
    name: 'NULLS FIRST is ignored',
    after: 132,
    change: (node) =>
      node.kind === 'order_item' && node.nulls === 'first' ? { ...node, nulls: null } : node,
  },
];

const withFault = (text: string, { change }: Fault): string =>
  printQuery(transform(parseQuery(text), change) as Query);

export const compileWith =
  (fault: Fault): CompileForTrial =>
  (text, project) =>
    compileAsProduct(withFault(text, fault), project);

/** Whether a query contains what the fault changes. */
export const isConcerned = (text: string, fault: Fault): boolean =>
  withFault(text, fault) !== printQuery(parseQuery(text));
