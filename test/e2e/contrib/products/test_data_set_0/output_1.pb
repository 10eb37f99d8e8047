Bfused_matmul_transposedJ`S£D@ΎΓΏr‹?t	>―›5Α¤ΌM@ικ¶?ιεΛ@eYΐΌMχΏς¨u?+―oΐ¨ςOΐ–®@}ΐΏAωZ@g¤ΐXAΐώσ
ΑE‚@―Α@#–½£qή@