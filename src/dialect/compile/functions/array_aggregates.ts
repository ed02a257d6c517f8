import type { Call, Expression, Name } from '../../ast.ts';
import { arrayFunctionOf } from '../../functions/combinators.ts';
import type { FoundFunction } from '../../functions/registry.ts';
import type { Statement } from '../../resolve/statement.ts';

/**
 * Rewrites an aggregate with the Array combinator: `sumArray(x)` becomes `arraySum(arrayFlatten(groupArray(x)))`.
 * @throws DialectError if the aggregate has no array function
 */
export function arrayCombinatorCall(
  call: Call,
  { definition, combinators }: FoundFunction,
  statement: Statement,
): Call {
  const { name, start, end } = call;
  const ofItems = arrayFunctionOf(definition.name);
  const others = combinators.filter((one) => one !== 'Array' && one !== 'If');
  if (ofItems === null || others.length > 0)
    throw statement.error(`Unsupported function call '${name.text}(...)'.`, name, 'Use ARRAY JOIN.');
  const named = (text: string): Name => ({ ...name, text });
  const plain = (text: string, argument: Expression): Call => ({
    kind: 'call',
    name: named(text),
    parameters: null,
    distinct: false,
    arguments: [argument],
    orderBy: [],
    nulls: null,
    filter: null,
    over: null,
    start,
    end,
  });
  const arrays: Call = { ...call, name: named(combinators.includes('If') ? 'groupArrayIf' : 'groupArray') };
  return plain(ofItems, plain('arrayFlatten', arrays));
}
