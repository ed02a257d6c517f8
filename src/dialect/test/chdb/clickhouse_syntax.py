"""Translates the dialect to ClickHouse, and opens a ClickHouse session with the settings of the reference product.

The time zone is New York; transform_null_in and join_use_nulls are on; all other settings are ClickHouse's defaults.
"""
import json
import re

from chdb import session

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


def open_engine(more=None):
    """A session with those settings."""
    engine = session.Session()
    for name, value in {**settings, **(more or {})}.items():
        engine.query(f'SET {name} = {value!r}')
    return engine


def rows_of(engine, statement):
    """The types and rows of a statement, totals last, or ClickHouse's error."""
    try:
        result = json.loads(engine.query(statement, 'JSONCompact').bytes())
    except Exception as error:  # chdb raises plain Exception
        return {'error': re.sub(r'\s+', ' ', str(error))[:160]}
    totals = [result['totals']] if 'totals' in result else []
    return {'types': [column['type'] for column in result['meta']], 'rows': result['data'] + totals}


def version_of(engine):
    return str(engine.query('SELECT version()', 'TSV')).strip().strip('"')


# ClickHouse equivalents of the dialect's functions, as the reference product generates them.
plain = {
    'toInt': "accurateCastOrNull({}, 'Int64')",
    'toFloat': "accurateCastOrNull({}, 'Float64')",
    'toUUID': "accurateCastOrNull({}, 'UUID')",
    'toBool': "accurateCastOrNull({}, 'Bool')",
    'toIntOrDefault': 'toInt64OrDefault({})',
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
    """The position after the bracket that closes the one at `opened`, ignoring quoted text."""
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
    """Translates dialect text to ClickHouse."""
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
        if name == 'concat':
            # As the reference product prints it, and `||`.
            result += f"concat({', '.join(f'''ifNull(toString({part}), '')''' for part in parts)})" if parts else "''"
        elif name == 'toDateTime' and parts and is_time.match(parts[0]):
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
