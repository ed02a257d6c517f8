import { parse } from 'libpg-query';

/** A relation that a statement reads, and whether its rows are cut to a team there. */
export interface ReadRelation {
  readonly name: string;
  /** The team that its own WHERE says, or null. */
  readonly team: string | null;
}

type Tree = Readonly<Record<string, unknown>>;

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;
const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, name) => (isTree(inner) ? inner[name] : undefined), value);

/**
 * The relations that a statement reads by PostgreSQL's own parser. A team counts where the relation stands alone in FROM
 * and the condition is a conjunct of that very WHERE.
 */
export async function relationsOf(
  sql: string,
  parameters: readonly string[],
): Promise<readonly ReadRelation[]> {
  const tree: unknown = await parse(sql);
  const found: ReadRelation[] = [];
  const names = new Set<string>();
  const visit = (node: unknown, team: string | null): void => {
    if (!isTree(node)) return;
    if (Array.isArray(node)) {
      for (const item of node) visit(item, null);
      return;
    }
    for (const [kind, inner] of Object.entries(node)) {
      if (kind === 'CommonTableExpr') names.add(String(at(inner, 'ctename')));
      if (kind === 'RangeVar') {
        const schema = at(inner, 'schemaname');
        const name = String(at(inner, 'relname'));
        found.push({ name: typeof schema === 'string' ? `${schema}.${name}` : name, team });
      } else if (kind === 'SelectStmt' && isTree(inner)) visitSelect(inner);
      else visit(inner, null);
    }
  };
  const visitSelect = (select: Tree): void => {
    for (const [member, inner] of Object.entries(select)) {
      const isAlone = member === 'fromClause' && Array.isArray(inner) && inner.length === 1;
      if (isAlone) visit((inner as readonly unknown[])[0], teamOf(select.whereClause, parameters));
      else if (isSetOperand(member) && isTree(inner)) visitSelect(inner);
      else visit(inner, null);
    }
  };
  visit(at(tree, 'stmts'), null);
  return found.filter(({ name }) => !names.has(name));
}

const isSetOperand = (member: string): boolean => member === 'larg' || member === 'rarg';

function teamOf(where: unknown, parameters: readonly string[]): string | null {
  const conjuncts = at(where, 'BoolExpr', 'boolop') === 'AND_EXPR' ? at(where, 'BoolExpr', 'args') : [where];
  if (!Array.isArray(conjuncts)) return null;
  for (const one of conjuncts) {
    const equality = at(one, 'A_Expr');
    const column = at(equality, 'lexpr', 'ColumnRef', 'fields', '0', 'String', 'sval');
    const sign = at(equality, 'name', '0', 'String', 'sval');
    const number = at(equality, 'rexpr', 'TypeCast', 'arg', 'ParamRef', 'number');
    if (column === 'team_id' && sign === '=' && typeof number === 'number')
      return parameters[number - 1] ?? null;
  }
  return null;
}
