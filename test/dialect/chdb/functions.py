"""Asks ClickHouse itself (PyPI package chdb) what each case of functions/*.txt gives and writes functions.json.

Run it as `python functions.py` beside this file whenever a case was added; tests read the JSON and never need chdb.
Names that the dialect has and ClickHouse writes otherwise are rewritten below. Times are those of New York, settings
those of the product whose queries analysts paste: transform_null_in, join_use_nulls, and the engine's own defaults.
Lines of functions/*.txt are `name: arguments ; arguments`; `@` before a piece marks an expression of its own, and in
aggregates.txt `@rows x, y: 1, 2 | 3, 4` names rows. by_hand.json holds what departs, with the reason; see the README.
"""
import json
import re
from pathlib import Path

from chdb import session

here = Path(__file__).parent
settings = {
    'session_timezone': 'America/New_York',
    'transform_null_in': 1,
    'join_use_nulls': 1,
    'date_time_output_format': 'iso',
    'output_format_json_quote_64bit_integers': 0,
    'output_format_json_quote_denormals': 1,
    'output_format_json_named_tuples_as_objects': 0,
    'enable_named_columns_in_function_tuple': 0,
    'allow_suspicious_low_cardinality_types': 1,
}
engine = session.Session()
for name, value in settings.items():
    engine.query(f'SET {name} = {value!r}')

# What the dialect's functions are in ClickHouse, as the product with that dialect prints them.
plain = {
    'toInt': "accurateCastOrNull({}, 'Int64')",
    'toFloat': "accurateCastOrNull({}, 'Float64')",
    'toUUID': "accurateCastOrNull({}, 'UUID')",
    'toBool': "accurateCastOrNull({}, 'Bool')",
    'toIntOrZero': 'toInt64OrZero({})',
    'toFloatOrZero': 'toFloat64OrZero({})',
    'toFloatOrDefault': 'toFloat64OrDefault({})',
    'toDate': 'accurateCastOrNull({}, \'Date\')',
    'md5': 'lower(hex(MD5({})))',
    'trim': 'trimBoth({})',
    'parseDateTime': 'parseDateTimeOrNull({})',
    'parseDateTimeBestEffort': 'parseDateTime64BestEffortOrNull({}, 6)',
    'countDistinct': 'uniqExact({})',
    'countDistinctIf': 'uniqExactIf({})',
    'e': 'e()',
    'make_date': 'makeDate({})',
    'date_trunc': 'dateTrunc({})',
    'trunc': 'trunc({})',
    'fromUnixTimestamp': 'toDateTime({})',
    'median': 'median({})',
    'JSONArrayLength': 'JSONArrayLength({})',
}


def arguments_of(text, opened):
    """The position behind the bracket that closes the one at `opened`, quotes left aside."""
    depth, quoted, place = 0, False, opened
    while place < len(text):
        letter = text[place]
        if quoted:
            if letter == '\\':
                place += 1
            elif letter == "'":
                quoted = False
        elif letter == "'":
            quoted = True
        elif letter in '([{':
            depth += 1
        elif letter in ')]}':
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    raise ValueError(text)


def split_top(text, separator=','):
    parts, depth, quoted, start, place = [], 0, False, 0, 0
    while place < len(text):
        letter = text[place]
        if quoted:
            if letter == '\\':
                place += 1
            elif letter == "'":
                quoted = False
        elif letter == "'":
            quoted = True
        elif letter in '([{':
            depth += 1
        elif letter in ')]}':
            depth -= 1
        elif depth == 0 and text.startswith(separator, place):
            parts.append(text[start:place])
            start = place + len(separator)
        place += 1
    parts.append(text[start:])
    return [part.strip() for part in parts]


is_time = re.compile(r"^'[^']*'$|^NULL$")


def rewritten(text):
    """The dialect's text in the words of ClickHouse."""
    result, place = '', 0
    for_call = re.compile(r"'(?:[^'\\]|\\.)*'|([A-Za-z_][A-Za-z0-9_]*)\(")
    while True:
        found = for_call.search(text, place)
        if found is None:
            return result + text[place:]
        result += text[place:found.start()]
        if found.group(1) is None:
            result += found.group(0)
            place = found.end()
            continue
        name = found.group(1)
        end = arguments_of(text, found.end() - 1)
        inside = rewritten(text[found.end():end - 1])
        place = end
        parts = split_top(inside) if inside else []
        if name == 'arrayFold' and parts and '->' not in parts[0]:
            at = next(i for i, part in enumerate(parts) if '->' in part)
            head, body = parts[at].split('->', 1)
            names = ', '.join([*parts[:at], head.strip()])
            inside = ', '.join([f'({names}) -> {body}', *parts[at + 1:]])
        if name == 'toDateTime' and parts and is_time.match(parts[0]):
            result += f'parseDateTime64BestEffortOrNull({parts[0]}, 6)'
        elif name == 'toDateTime64' and parts and is_time.match(parts[0]):
            result += f'parseDateTime64BestEffortOrNull({parts[0]}, {parts[1]})'
        elif name == 'toDate' and parts and (parts[0].startswith("'") or parts[0] == 'NULL'):
            result += f'toDateOrNull({inside})' if parts[0] != 'NULL' else 'toDateOrNull(CAST(NULL AS Nullable(String)))'
        elif name == 'toDate':
            result += f'toDate({inside})'
        elif name == 'toDecimal':
            result += f"accurateCastOrNull({parts[0]}, 'Decimal64({parts[1]})')"
        elif name in ('dateAdd', 'dateSub') and len(parts) == 3:
            result += f"{name}({parts[0].strip(chr(39))}, {parts[1]}, {parts[2]})"
        elif name in plain:
            result += plain[name].replace('{}', inside)
        else:
            result += f'{name}({inside})'


def cases_of(path):
    rows = {}
    for line in path.read_text().splitlines():
        if not line.strip():
            continue
        if line.startswith('@'):
            head, _, values = line[1:].partition(': ')
            name, _, columns = head.partition(' ')
            values, _, where = values.partition(' where ')
            rows[name] = (split_top(columns), [split_top(row) for row in split_top(values, '|')], where)
            continue
        name, _, rest = line.partition(':')
        for piece in split_top(rest, ' ; '):
            if rows:
                source, _, call = piece.partition(' ')
                columns, values, where = rows[source]
                branches = ' union all '.join(
                    'select ' + ', '.join(f'{value} as {column}' for column, value in zip(columns, row)) for row in values
                )
                filtered = f' where {where}' if where else ''
                yield name, f'select {call} from ({branches}) as given{filtered}'
            elif piece.startswith('@') and ' over ' in piece:
                call, _, source = piece[1:].partition(' over ')
                yield name, f'select {call} from (select {source}) as given'
            elif piece.startswith('@'):
                yield name, f'select {piece[1:]}'
            else:
                yield name, f'select {name}({piece})'


def answer(statement):
    try:
        result = json.loads(engine.query(statement, 'JSONCompact').bytes())
    except Exception as error:  # chdb has one class of error
        return {'error': re.sub(r'\s+', ' ', str(error))[:160]}
    return {'type': result['meta'][0]['type'], 'value': result['data'][0][0]}


recorded = []
for path in sorted((here / 'functions').glob('*.txt')):
    for name, statement in cases_of(path):
        asked = re.sub(r'(windowFunnel\(\d+\)\()y,', r'\1toDateTime(assumeNotNull(y)),', rewritten(statement))
        recorded.append({'function': name, 'query': statement, 'asked': asked, **answer(asked)})

version = str(engine.query('SELECT version()', 'TSV')).strip().strip('"')
lines = ',\n'.join(json.dumps(one, ensure_ascii=False) for one in recorded)
head = json.dumps({'clickhouse': version, 'settings': settings})[:-1]
(here / 'functions.json').write_text(f'{head}, "cases": [\n{lines}\n]}}\n')
print(len(recorded), 'cases,', sum('error' in one for one in recorded), 'refused by ClickHouse')
for one in recorded:
    if 'error' in one:
        print(one['query'], '=>', one['asked'], '::', one['error'][:110])
